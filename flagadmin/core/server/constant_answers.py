"""A shortcut for paths whose answer depends on the request alone, such as /healthz."""

from typing import Any

from flagadmin.core.server.loop_routes import Headers, Learn, Ready
from flagadmin.core.server.replay import read_inputs, replay, replayable_headers

MAX_ANSWERS = 100  # for each path: clients use a few hosts


class ConstantAnswers:
    """Replays the first 200 for the same inputs."""

    caller = ""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Headers, bytes]] = {}

    def answer(self, scope: Any) -> Ready | None:
        inputs = read_inputs(scope)
        if inputs is None or (known := self._known.get(inputs.key)) is None:
            return None
        return replay(200, *known, inputs)

    def learn(self, scope: Any) -> Learn | None:
        inputs = read_inputs(scope)
        if inputs is None or len(self._known) >= MAX_ANSWERS:
            return None

        def learn(sent: Ready, response: Any) -> None:
            headers = replayable_headers(sent)
            if sent.status == 200 and headers is not None:
                self._known[inputs.key] = headers, sent.body

        return learn
