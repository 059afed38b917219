"""Prometheus' text format, read strictly enough to notice a malformed page."""

import re

SAMPLE = re.compile(r'([a-z_]+)(?:\{(.*)\})? (-?[0-9.e+-]+|\+Inf|NaN)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


class Metrics:
    def __init__(self, text):
        self.types = {}
        self.samples = {}
        assert text.endswith("\n")
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.types, f"two TYPE lines for {name}"
                self.types[name] = kind
            elif line and not line.startswith("#"):
                self._add_sample(line)

    def _add_sample(self, line):
        match = SAMPLE.fullmatch(line)
        assert match, f"not a sample: {line!r}"
        labels = dict(LABEL.findall(match[2] or ""))
        rebuilt = ",".join(f'{name}="{value}"' for name, value in labels.items())
        assert rebuilt == (match[2] or ""), f"malformed labels: {line!r}"
        key = (match[1], frozenset(labels.items()))
        assert key not in self.samples, f"twice: {line!r}"
        self.samples[key] = float(match[3])

    def value(self, name, **labels):
        return self.samples.get((name, frozenset(labels.items())))

    def sum(self, name, **labels):
        wanted = set(labels.items())
        return sum(value for (sample, found), value in self.samples.items()
                   if sample == name and wanted <= set(found))

    def label_names(self, name):
        return {frozenset(label for label, _ in labels)
                for sample, labels in self.samples if sample == name}

    def families(self):
        """The names of metrics, a histogram's three as one."""
        found = set()
        for name, _ in self.samples:
            for part in HISTOGRAM_PARTS:
                base = name.removesuffix(part)
                if base != name and self.types.get(base) == "histogram":
                    name = base
            found.add(name)
        return found


def read_metrics(client):
    reply = client.request("GET", "/metrics")
    assert reply.status == 200, reply
    assert reply.headers["content-type"].startswith("text/plain")
    return Metrics(reply.body.decode())
