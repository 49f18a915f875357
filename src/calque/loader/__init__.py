"""Files into tables, each exactly once.

A statement goes one way, and each step is a folder: ``request`` → ``plan`` → ``run`` → ``commit`` →
``after``, and then the ``report``. ``model`` holds the values between the steps. ``run_request`` is
that way, ``batch`` one load of it from claim to end, ``api`` the door.
"""
