"""The server: worker processes, each with one event loop, and threads for Django.

`manage.py serve` loads the application (`flagadmin/worker.py`), and Granian forks its workers. A request takes a
thread only once its body is complete (`flagadmin/rsgi.py`). `background_tasks.py` runs tasks in another fork: most on
one server at a time in one thread, and tasks that must run on time on all servers, each in its own thread. The event
loop answers some requests itself (`loop_routes.py`):

- A shortcut answers from memory or declines. If it declines, Django answers, and the shortcut remembers the response:
  `ready_answers.py` repeats it for an equal request while its `Origin` holds.
- A stream is a coroutine that sends events while the client listens. When the worker stops, it sets `stopping` and
  waits up to 20 s for the stream to end.
- A task runs beside the requests, in every worker.

Objects loaded at the start are exempt from garbage collection, which runs after 100,000 new objects (`memory.py`).
Code that leaves megabytes in a reference cycle breaks it: `FreedBodies` for API views, `FreedContexts` for templates.

Requests that write take at most three quarters of the threads (`loop_routes.is_writing`). While the database cannot be
reached, `flagadmin/core/db/outages.py` answers SDK reads from memory (docs/decisions/outages.md).
"""
