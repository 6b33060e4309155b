"""What palmette finds on this machine (`here`), and on the hosts of an allocation (`site`)."""

from palmette.doctor.here import Check, Findings, examine

__all__ = ["Check", "Findings", "examine"]
