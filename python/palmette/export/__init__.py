"""What palmette knows, written for MPI libraries that run without it: `palmette export`.

`decisions` asks the decision table what it takes for each function and size on one job. A `match` of each library
turns an algorithm into the nearest one that the library has, or says why there is none; a writer for each kind of file
puts them down. A library's own default stays wherever nothing is near.
"""
