"""The page of a recording: one HTML file that needs no other, which `write.render` makes from a document.

The document holds plain values. A column is base64 of gzip of little-endian values of the kind that stands in brackets.
Times named `_s` are seconds; None stands for what isn't known, and a part that is None is left out of the page.

    program, folder, version, began (ISO 8601; None of simulated time), kind (trace or profile), ranks, nodes, calls,
    time_s
    notes             sentences
    findings          number, kind, function, place, ranks, seconds, share (0 to 1), sentence, next (a command),
                      window ([begin_s, end_s] or None)
    efficiencies      None or parallel, load_balance, communication, levels: [name, balance]
    split             computing_s, waiting_s, bound_s, excess_s, in_call_s (both where the bound isn't known),
                      completion_s, other_s: of all ranks together; a profile's None but for the first and the last
    functions, places names that others give by index
    timeline          None or
        span_s
        rows          name ("rank 3", "ranks 8-15": read for its numbers), host; at most 128
        levels        from coarse to fine: bins; mpi [u8], waiting [u8], shares of time in 1/255; function [u8], the
                      costliest or 255: rows * bins values each
        calls         count, total; row [u16], begin, length, waiting [u32, in span_s / 2**32], function [u8],
                      place [u16], bytes [f32], waits_for [i32, rank or -1]; by begin
        messages      count, total; from, to [u16, rows], sent, received [u32 as above], bytes [f32]
    paths             function, place, calls, bytes, seconds, waiting_s, bound_s, excess_s, in_call_s, completion_s,
                      other_s, longest_s, ranks
    flame             names; tree: [name, own seconds, calls, [children]], the program first
    matrix            None or rows, names (of rows), bytes [f32], messages [f32] (rows * rows, senders first),
                      total_bytes, counted (a sentence)
    links             None or levels (names), bins, span_s, counted (a sentence), nodes: name, level, parent (-1:
                      none, or one that isn't listed), rate_Bps, up_bytes, down_bytes (as sent), up, down
                      [f32] (bins values: what it carries, where its rate is known)
    by_rank           rank, computing_s, off_processor_s, put_aside_s, io_s, asleep_s, waiting_s, in_calls_s, bytes,
                      on_critical_path_s: what isn't known is None
    sampled           None or samples, rate_hz (asked for), taken_hz, by (timers or events), complete (share of
                      stacks), lost, computing_s, in_mpi_s
        lines         function, place, file, line, cpu_s, share, least_s, least_rank, most_s, most_rank; heaviest first
        functions     function, file, kind, cpu_s (with callees), own_s
        tree          depth, function, file, lines, kind, cpu_s, own_s, mean_s, deviation_s, least_s, least_rank,
                      most_s, most_rank, is_hot (on the hot path); each before what it calls
        callers       depth, function, file, kind, cpu_s; each before those that call it
                      With `before` rows of these three have before_s, and index: their number in `viewed`, None of
                      what is only there
    before            None or program, folder, ranks, time_s of a run whose samples stand beside this one's
    viewed            None or what is shown of `sampled` besides
        columns       names of ranks ("rank 3", "ranks 8-15"); at most 128
        bins          of histograms, from the least of all ranks to the most
        tree, functions  of the rows of `sampled`, those of functions without what they call: seconds [f4] (rows *
                      columns, means over the ranks of a column), histogram [u4] (rows * bins, ranks), least, most
                      [f4]
        sources       file, first (line), lines (texts), seconds (by line, with what it calls), is_newer (than the run)
    sizes             function, bytes_from, bytes_to, calls, seconds
    durations         function, from_s, to_s, calls
    recorded          label, text
"""
