"""A page to look at: what a store holds, what was loaded and copied, what is wrong.

A page is a function from a request to a :class:`~calque.console.page.Page`: a template and data.
The data is the page's JSON at the same address, and the template shows it to people. ``sessions``
says who is signed in, ``guard`` lets nobody else in and forbids scripts that are not ours, ``page``
answers, ``live`` tells changing figures, ``charts`` draws, ``site`` puts sections together,
``server`` puts them behind HTTP. ``ledger_pages`` needs the ledger alone, ``store_pages`` a store.

Invariants: without a session there is the sign-in page and nothing else. A change needs the
session's CSRF token. What users named is text: templates escape it, and no page runs a script but
``static/console.js``. Nothing is fetched from another host.
"""
