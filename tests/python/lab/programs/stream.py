"""Plain TCP between two hosts: `stream.py receive`, then `stream.py send HOST BYTES` or `stream.py ping HOST COUNT`.

The sender prints bytes a second; ping prints the shortest round trip in seconds.
"""

from __future__ import annotations

import socket
import sys
import time

PORT = 7411


def receive() -> None:
    server = socket.create_server(("", PORT))
    print("listening", flush=True)
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    left = int.from_bytes(connection.recv(8), "big")
    while left > 0:
        left -= len(connection.recv(min(left, 1 << 16)))
    connection.sendall(b"x")
    while data := connection.recv(64):
        connection.sendall(data)


def connect(host: str, count: int) -> socket.socket:
    connection = socket.create_connection((host, PORT), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(count.to_bytes(8, "big"))
    return connection


def send(host: str, count: int) -> None:
    connection = connect(host, count)
    start = time.perf_counter()
    connection.sendall(bytes(count))
    connection.recv(1)
    print(count / (time.perf_counter() - start))


def ping(host: str, count: int) -> None:
    connection = connect(host, 0)
    connection.recv(1)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        connection.sendall(b"x" * 64)
        connection.recv(64)
        times.append(time.perf_counter() - start)
    print(min(times))


if sys.argv[1] == "receive":
    receive()
else:
    {"send": send, "ping": ping}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
