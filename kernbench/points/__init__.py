"""Measures points, each one simulation, on any engine with the interface of `concurrent.futures`.

    points -- `driver` --> executor -- `worker` --> point process (`child`) -- row --> rows file

`task` has what travels: a point, its limits, its row or the reason why it has none. `driver`
submits the points of a study, a sweep or `validate`, and tries a point again whose worker has died.
`executors` opens the engine that `--on` names. `worker` runs in each of its threads or processes
and has a point process for each, `child`, which can be killed without any loss. `rows_file` keeps
each row as it comes, so that a later start can go on. `code` identifies the code on both sides, and
`progress` shows what is complete.
"""
