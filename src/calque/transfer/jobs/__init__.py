"""Every run is a job, which another process can go on with."""
