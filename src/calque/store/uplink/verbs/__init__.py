"""What a client does with buckets and objects, one module for each verb."""
