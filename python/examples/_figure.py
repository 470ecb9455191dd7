"""The figure of an example."""


def draw(out, plot, **labels):
    """Have `plot` fill axes and write them to the file `out`, if one is asked for and matplotlib is installed."""
    if not out:
        return
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no figure: matplotlib is not installed")
        return
    # Without a salt and with a date, the same figure would be another file each time.
    pyplot.rcParams["svg.hashsalt"] = "easyllp"
    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    plot(axes)
    axes.set(**labels)
    entries = axes.get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=3 if len(entries[0]) <= 3 else 2)
    figure.savefig(out, metadata={"Date": None} if out.endswith(".svg") else None)
    print(f"figure: {out}")
