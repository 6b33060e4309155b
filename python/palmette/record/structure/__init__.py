"""The structure of programs, recovered from their files: functions, inlined calls, loops, and lines of the source.

`worker` looks addresses up in a process of its own; `palmette.record.symbols` asks it. Only what addresses need is
read: units of the debug information and functions in which one lies.
"""
