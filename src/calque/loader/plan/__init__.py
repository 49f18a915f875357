"""What is to be done: the stage is listed, compared and planned. Nothing is written.

``stage`` lists, ``compare`` decides of each file, ``make_plan`` and ``dialect`` choose how files
are read and make the plan, ``evolve`` finds the schema of a new or growing table, ``preview`` is
what a dry run shows, ``label`` knows what a label has loaded before, ``verify_sources`` asks at the
end whether the planned files still are what they were. (Tables grow before the plan:
``evolve_table`` commits.)
"""
