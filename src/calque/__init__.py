"""What each layer of calque is made of stands in ARCHITECTURE.md."""
