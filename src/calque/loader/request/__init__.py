"""What is asked for: COPY INTO or keywords become one request that checks itself.

``parse`` reads a statement, ``keywords`` and ``paths`` read the arguments of ``calque.load``; both
end in ``request.LoadRequest``, and ``render`` writes one as a statement again, for the history. A
new option of COPY INTO is a line in ``options``, a field of the request and a keyword.
"""

from calque.loader.required_packages import STATEMENTS, require_load_extra

require_load_extra(STATEMENTS)
