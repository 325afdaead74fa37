"""Trials that try to break the library, repeated in bounded time: `scripts/attack` (see docs/reliability.md)."""
