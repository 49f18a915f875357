"""An object's stream: finding it, where its pieces are, and taking it away."""
