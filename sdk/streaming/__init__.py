"""Streams changes to SDKs.

Django handles `/api/client/streaming` like any other request, including refusals. `api.py` returns the first event and
a `Subscription` (token, scope, version) as `response.stream`. `flagadmin/core/server/event_streams.py` keeps the
response open from the event loop and knows nothing about flags. `scope_streams.py` holds the open streams by scope and
calls `update` with those that may be out of date. `sdk_streams.py` builds the events once for each version of the
streams, in a thread, and sends them to all of these streams.

A slow client costs next to nothing. Granian keeps a copy of its data until the client takes it, so a stream gives it
at most 256 kB until the kernel reports that the client has acknowledged everything
(`flagadmin/core/server/slow_clients.py`). Until then the stream gets no events; then it gets all changes in one
event. A client that takes longer than 30 s is disconnected.

To add another kind of stream, write a view whose response has a `stream`, create a `TokenStreams(watcher, update)`, and
register its `serve` with `loop_routes.add_stream(path, handler)`.
"""
