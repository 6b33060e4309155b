"""Meep: a pulse in a dielectric waveguide, and how much of it arrives."""

import meep as mp

simulation = mp.Simulation(
    cell_size=mp.Vector3(16, 8, 0),
    geometry=[mp.Block(mp.Vector3(mp.inf, 1, mp.inf), center=mp.Vector3(), material=mp.Medium(epsilon=12))],
    sources=[mp.Source(mp.GaussianSource(0.15, fwidth=0.1), component=mp.Ez, center=mp.Vector3(-7, 0))],
    boundary_layers=[mp.PML(1.0)],
    resolution=12,
)
flux = simulation.add_flux(0.15, 0.1, 5, mp.FluxRegion(center=mp.Vector3(6, 0), size=mp.Vector3(0, 4)))
simulation.run(until_after_sources=100)
simulation.display_fluxes(flux)
