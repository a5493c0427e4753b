"""A Qdrant server as the index, through its own client. Found by meaning only: words are not searched there.

Each embedding model has collections of its own, ``<name>-texts-<model>`` and ``<name>-episodes-<model>``, so that
vectors of two models cannot meet. Replacing a text writes its new passages first and then deletes the older ones: a
process that dies in between leaves both, which the next time of learning puts right.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from voice_agent.diagnostics import RemediableError
from voice_agent.recall.chunks import embedded_text
from voice_agent.recall.entries import Episode, Found, Kind, Passage, Source, Who
from voice_agent.recall.index import Forget, IndexUnavailable, Pending
from voice_agent.recall.qdrant_requests import has, matching

if TYPE_CHECKING:
    from voice_agent.recall.index import Vector, Vectors

T = TypeVar("T")
PAGE = 256
_SPACE = uuid.UUID("8d3f1c52-6b0e-4b8e-9a53-1f3a5c1f7e10")
"""Names of points are made in it; any fixed value does."""


class QdrantIndex:
    """Implements `Index`.

    Args:
        client: Makes the client (``qdrant_client.QdrantClient``).
        name: What its collections are called after: the agent's id.
    """

    searches_words = False

    def __init__(self, client: Callable[[], Any], name: str, place: str = "the Qdrant server") -> None:
        self._connect, self._name, self._place = client, name, place
        self._client: Any = None
        self._texts = self._said = ""
        self._old: list[str] = []

    def open(self, identity: str) -> int:
        mark = hashlib.sha256(identity.encode()).hexdigest()[:10]
        self._texts, self._said = f"{self._name}-texts-{mark}", f"{self._name}-episodes-{mark}"
        try:
            if self._client is None:
                self._client = self._connect()
            names = [collection.name for collection in self._client.get_collections().collections]
            ours = (f"{self._name}-texts-", f"{self._name}-episodes-")
            self._old = [n for n in names if n.startswith(ours) and n not in (self._texts, self._said)]
            return sum(int(self._client.count(name).count) for name in self._old)
        except RemediableError:
            raise
        except Exception as fault:
            raise RemediableError(
                f"{self._place} cannot be used for recall: {type(fault).__name__}.",
                "Start it, or mend recall.index.url and the key in integrations.yml; `kind: embedded` needs no server.",
            ) from fault

    def _need(self, collection: str, size: int) -> None:
        from qdrant_client import models

        if self._client.collection_exists(collection):
            return
        self._client.create_collection(
            collection, vectors_config=models.VectorParams(size=size, distance=models.Distance.COSINE)
        )
        for field in ("kind", "owner", "name", "caller", "conversation"):
            self._client.create_payload_index(collection, field, models.PayloadSchemaType.KEYWORD)
        self._client.create_payload_index(collection, "moment", models.PayloadSchemaType.FLOAT)

    def replace(self, source: Source, passages: Sequence[Passage], vectors: Vectors) -> None:
        from qdrant_client import models

        about = {
            "kind": source.kind.value, "owner": source.owner, "name": source.name, "digest": source.digest,
            "learnt_at": source.learnt_at, "passages": len(passages), "edition": uuid.uuid4().hex,
        }  # fmt: skip
        points = [
            models.PointStruct(
                id=uuid.uuid4().hex,
                vector=vector.tolist(),
                payload={**about, "nth": nth, "title": p.title, "text": p.text, "place": p.source},
            )
            for nth, (p, vector) in enumerate(zip(passages, vectors, strict=True))
        ]

        def write() -> None:
            self._need(self._texts, vectors.shape[1])
            for at in range(0, len(points), PAGE):
                self._client.upsert(self._texts, points[at : at + PAGE], wait=True)
            former = matching(kind=source.kind.value, owner=source.owner, name=source.name)
            former.must_not = [has("edition", about["edition"])]
            self._client.delete(self._texts, models.FilterSelector(filter=former), wait=True)

        self._try(write)

    def remove(self, kind: Kind, owner: str, name: str) -> bool:
        from qdrant_client import models

        def write() -> bool:
            where, removed = matching(kind=kind.value, owner=owner, name=name), 0
            for collection in self._all("-texts-"):
                removed += int(self._client.count(collection, count_filter=where).count)
                self._client.delete(collection, models.FilterSelector(filter=where), wait=True)
            return removed > 0

        return self._try(write)

    def sources(self, kind: Kind, owner: str | None = None) -> Sequence[Source]:
        def read() -> list[Source]:
            where = {"kind": kind.value} if owner is None else {"kind": kind.value, "owner": owner}
            where_first = matching(**where)
            where_first.must.append(has("nth", 0))
            newest: dict[tuple[str, str], Source] = {}
            for collection in self._all("-texts-"):
                for point in self._scrolled(collection, where_first):
                    p = point.payload
                    found = Source(kind, p["owner"], p["name"], p["digest"], p["learnt_at"], p["passages"])
                    known = newest.get((found.owner, found.name))
                    if known is None or known.learnt_at <= found.learnt_at:
                        newest[found.owner, found.name] = found
            return sorted(newest.values(), key=lambda source: source.name)

        return self._try(read)

    def keep(self, episodes: Sequence[Episode], vectors: Vectors) -> None:
        from qdrant_client import models

        points = [
            models.PointStruct(
                id=str(uuid.uuid5(_SPACE, f"{e.who.conversation}\n{e.turn}")),
                vector=vector.tolist(),
                payload={
                    "caller": e.who.caller, "conversation": e.who.conversation, "turn": e.turn, "moment": e.moment,
                    "text": e.text,
                },
            )
            for e, vector in zip(episodes, vectors, strict=True)
        ]  # fmt: skip

        def write() -> None:
            self._need(self._said, vectors.shape[1])
            self._client.upsert(self._said, points, wait=True)

        self._try(write)

    def search(
        self, vector: Vector, words: str, *, documents: bool, owners: Sequence[str], limit: int, threshold: float
    ) -> Sequence[Found]:
        from qdrant_client import models

        allowed: list[Any] = [matching(kind=Kind.DOCUMENT.value)] if documents else []
        allowed += [matching(kind=Kind.REFERENCE.value, owner=owner) for owner in owners]
        if not allowed:
            return []
        points = self._near(self._texts, vector, models.Filter(should=allowed), limit, threshold)
        return [
            Found(Kind(p.payload["kind"]), p.payload["place"], p.payload["title"], p.payload["text"], float(p.score))
            for p in points
        ]

    def search_words(self, words: str, *, documents: bool, owners: Sequence[str], limit: int) -> Sequence[Found]:
        return []

    def episodes(self, vector: Vector, who: Who, *, limit: int, threshold: float) -> Sequence[Found]:
        from qdrant_client import models

        allowed = [matching(conversation=who.conversation, caller="")]
        if who.caller:
            allowed.append(matching(caller=who.caller))
        points = self._near(self._said, vector, models.Filter(should=allowed), limit, threshold)
        found = [(p.payload, float(p.score)) for p in points]
        return [Found(Kind.EPISODE, p["conversation"], "", p["text"], s, p["moment"], p["turn"]) for p, s in found]

    def conversations(self) -> Sequence[str]:
        def read() -> list[str]:
            found = {p.payload["conversation"] for name in self._all("-episodes-") for p in self._scrolled(name, None)}
            return sorted(found)

        return self._try(read)

    def forget(self, what: Forget) -> int:
        from qdrant_client import models

        given = {"conversation": what.conversation, "caller": what.caller}
        where = matching(**{key: value for key, value in given.items() if value is not None})
        if what.older_than is not None:
            where.must.append(models.FieldCondition(key="moment", range=models.Range(lt=what.older_than)))

        def write() -> int:
            count = 0
            for collection in self._all("-episodes-"):
                count += int(self._client.count(collection, count_filter=where).count)
                self._client.delete(collection, models.FilterSelector(filter=where), wait=True)
            return count

        return self._try(write)

    def pending(self, limit: int) -> Sequence[Pending]:
        def read() -> list[Pending]:
            for name in tuple(self._old):
                points = self._client.scroll(name, limit=limit, with_payload=True)[0]
                if points:
                    text = [embedded_text(p.payload.get("title", ""), p.payload["text"]) for p in points]
                    return [Pending(f"{name}\n{p.id}", one) for p, one in zip(points, text, strict=True)]
                self._client.delete_collection(name)
                self._old.remove(name)
            return []

        return self._try(read)

    def fill(self, pending: Sequence[Pending], vectors: Vectors) -> None:
        """Move points from the collection of the former model: into the new one first, then out of the old one."""
        from qdrant_client import models

        def write() -> None:
            name = pending[0].key.partition("\n")[0]
            to = self._texts if "-texts-" in name else self._said
            ids = [one.key.partition("\n")[2] for one in pending]
            payloads = {str(p.id): p.payload for p in self._client.retrieve(name, ids, with_payload=True)}
            self._need(to, vectors.shape[1])
            points = [
                models.PointStruct(id=id, vector=vector.tolist(), payload=payloads[id])
                for id, vector in zip(ids, vectors, strict=True)
                if id in payloads
            ]
            if points:
                self._client.upsert(to, points, wait=True)
            self._client.delete(name, models.PointIdsList(points=ids), wait=True)

        self._try(write)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _all(self, part: str) -> list[str]:
        names = [self._texts if part == "-texts-" else self._said, *(name for name in self._old if part in name)]
        return [name for name in names if self._client.collection_exists(name)]

    def _near(self, collection: str, vector: Vector, where: Any, limit: int, threshold: float) -> list[Any]:
        def read() -> list[Any]:
            if not self._client.collection_exists(collection):
                return []
            found = self._client.query_points(
                collection,
                query=vector.tolist(),
                query_filter=where,
                limit=limit,
                score_threshold=threshold,
                with_payload=True,
            )
            return list(found.points)

        return self._try(read)

    def _scrolled(self, collection: str, where: Any) -> list[Any]:
        found: list[Any] = []
        offset = None
        while True:
            page, offset = self._client.scroll(collection, where, limit=PAGE, offset=offset, with_payload=True)
            found += page
            if offset is None:
                return found

    def _try(self, work: Callable[[], T]) -> T:
        if self._client is None:
            raise IndexUnavailable("the index of recall is not open")
        try:
            return work()
        except Exception as fault:
            # What a server says may hold what callers said: only the kind of fault is told.
            raise IndexUnavailable(f"{self._place} did not answer as expected: {type(fault).__name__}") from fault
