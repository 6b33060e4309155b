"""The program `palmette-lab`."""
