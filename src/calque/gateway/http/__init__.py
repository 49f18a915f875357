"""HTTP as the gateway speaks it: ``watch`` waits with every silent connection in one thread,
``connection`` is a socket and what came over it, ``head`` and ``body`` are read off it,
``exchange`` is one request and its answer. What parses is httptools; one thread receives, carries
out and answers a request, so no block of a body passes from thread to thread."""
