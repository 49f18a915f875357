"""The names of Airflow that a page uses, so that what it calls of calque is run."""
