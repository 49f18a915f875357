"""What follows a committed load: purge, archive, expiry, orphans."""
