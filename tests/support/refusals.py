"""Requests that must be refused and leave everything as it was."""


def assert_refused(queue, method, path, body, codes, *names):
    """The request is a 400 with one of these codes, its message has all these names, and nothing of
    the queue has changed."""
    before = queue.snapshot()
    reply = queue.client.request(method, path, body)
    codes = [codes] if isinstance(codes, str) else codes
    assert reply.status == 400 and reply.code in codes, reply
    for name in names:
        assert name in reply.message, f"{name!r} is not named: {reply.message}"
    assert queue.snapshot() == before
