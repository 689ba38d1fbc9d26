"""An SDK in delta mode: what it has, and what it asks for."""

from typing import Any

from tests.support.sdk import Sdk, make_sdk


class DeltaSdk:
    """Applies events as the Node SDK does, and checks what every answer must be."""

    def __init__(self, sdk: Sdk | None = None, query: str = "", **more: Any) -> None:
        self.sdk = sdk or make_sdk(**more)
        self.query = query
        self.etag = ""
        self.flags: dict[str, Any] = {}
        self.segments: dict[int, Any] = {}

    def get(self, etag: str | None = None) -> Any:
        etag = self.etag if etag is None else etag
        headers = {"If-None-Match": etag} if etag else {}
        return self.sdk.api.get(f"/api/client/delta{self.query}", headers=headers)

    def poll(self) -> list[tuple[str, Any]]:
        """Asks once. Returns kind and subject of each event."""
        answer = self.get()
        if answer.status_code == 304:
            assert not answer.content
            return []
        assert answer.status_code == 200, answer.content
        self.etag = answer["ETag"]
        events = answer.json()["events"]
        assert all(0 < event["eventId"] < 2**32 for event in events)
        assert self.etag == f'"{events[-1]["eventId"]}"' or ":" in self.etag
        return [self.apply(event) for event in events]

    def apply(self, event: dict[str, Any]) -> tuple[str, Any]:
        kind = event["type"]
        assert (
            set(event) - {"type", "eventId"}
            == {
                "hydration": {"features", "segments"},
                "feature-updated": {"feature"},
                "feature-removed": {"featureName", "project"},
                "segment-updated": {"segment"},
                "segment-removed": {"segmentId"},
            }[kind]
        )
        if kind == "hydration":
            self.flags = {flag["name"]: flag for flag in event["features"]}
            self.segments = {segment["id"]: segment for segment in event["segments"]}
            self._check()
            return kind, list(self.flags)
        if kind == "feature-updated":
            self.flags[event["feature"]["name"]] = event["feature"]
            self._check()
            return kind, event["feature"]["name"]
        if kind == "feature-removed":
            self.flags.pop(event["featureName"], None)  # created and removed since it last asked
            return kind, event["featureName"]
        if kind == "segment-updated":
            self.segments[event["segment"]["id"]] = event["segment"]
            return kind, event["segment"]["id"]
        self.segments.pop(event["segmentId"], None)
        self._check()
        return kind, event["segmentId"]

    def _check(self) -> None:
        """No flag refers to a segment that the SDK does not have."""
        for flag in self.flags.values():
            for strategy in flag["strategies"]:
                assert set(strategy.get("segments", ())) <= self.segments.keys()

    def full(self) -> tuple[dict[str, Any], dict[int, Any]]:
        """What an SDK that polls has."""
        answer = self.sdk.features().json()
        return (
            {flag["name"]: flag for flag in answer["features"]},
            {segment["id"]: segment for segment in answer["segments"]},
        )

    def is_current(self) -> bool:
        return (self.flags, self.segments) == self.full()
