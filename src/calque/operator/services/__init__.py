"""One package a service, the same file names in each; the registry names them."""
