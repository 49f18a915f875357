"""What one sees who only looks: a stage, a table, the tables there are. Nothing is written."""
