"""`aimle watch`: a live page of the runs in a folder.

``folder_lock`` finds the process that works in a folder, ``reader`` reads the runs and ``server``
answers the browser. Nothing is written, and only files that have changed are read again. The page
is `page.html`, `page.css` and `page.js`, which loads nothing from elsewhere.
"""
