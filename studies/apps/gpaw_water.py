"""GPAW: ground state of a water molecule on a real-space grid, two domains."""

from ase.build import molecule
from gpaw import GPAW

atoms = molecule("H2O")
atoms.center(vacuum=3.0)
atoms.calc = GPAW(mode="fd", h=0.22, xc="LDA", txt=None, parallel={"domain": 2})
energy = atoms.get_potential_energy()
if atoms.calc.wfs.world.rank == 0:
    print(f"energy {energy:.8f} eV")
