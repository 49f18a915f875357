"""What is to be done: the stage is listed, compared with the ledger and cut. Nothing is written."""
