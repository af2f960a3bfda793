"""Calls of a function, noted as they are made."""


def watch(monkeypatch, owner, name):
    """Let a function note what it is called with; return the notes."""
    calls, function = [], getattr(owner, name)

    def noted(*given, **named):
        calls.append(given)
        return function(*given, **named)

    monkeypatch.setattr(owner, name, noted)
    return calls
