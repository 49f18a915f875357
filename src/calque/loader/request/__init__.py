"""What is asked for: COPY INTO or keywords become one request that checks itself."""
