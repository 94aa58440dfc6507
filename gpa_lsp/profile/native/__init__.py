"""Native profile format, ``gpa-lsp/profile/2``: JSON that collectors, people and tests write.

The smallest useful file::

    {
      "format": "gpa-lsp/profile/2",
      "launches": [
        {"kernel": "saxpy", "grid": [128, 1, 1], "block": [256, 1, 1], "duration_ns": 12800,
         "device": {"compute_capability": "8.0"},
         "samples": [
           {"function": "saxpy", "pc_offset": 32, "by_reason": {"long_scoreboard": {"all": 90, "latency": 85}}},
           {"function": "saxpy", "pc_offset": 48, "by_reason": {"selected": {"all": 10, "latency": 0}}}
         ]}
      ]
    }

``native_schema.json`` beside this package describes every member; unknown members are errors (so that a misspelt one is noticed), except
``comment``, which any object with a fixed set of members may carry and which is not kept. The rules the schema cannot express:

* **Unknown.** What a collector does not know it leaves out; nothing absent stands for 0, and no value has to be made up. ``latency`` is given
  with every count of a launch or with none. ``grid`` and ``block`` are absent where launches are not seen.
* **Aggregates.** With ``aggregate`` a record stands for many launches of a kernel: its samples are those of all of them, its duration and other
  metrics the mean over them. A collector that samples continuously writes one for each function; a duration needs the number of launches.
* **Conservation.** What was sampled is in the rows of launches, or counted in ``sampling``: ``dropped_samples`` were lost, ``foreign_samples``
  are of code that is in no launch. Both stand in the launch they belong to, or, where nobody can tell, once for the whole run.
  ``total_samples`` is the collector's own count of all of them; where the parts do not add up to it the reader says so.
* **Modules.** A launch names its module by id; without ``module`` it belongs to the only module there is, and where the file has none, to an
  implied module 0 without an image. ``"module": null`` says that it is not known.
* **Addresses.** A sample row names its instruction by ``function`` and ``pc_offset`` (bytes from the function's start), or by absolute
  ``address``; a function of another module than the launch's with its ``module``. A module's functions either all have an ``address`` or none has;
  then each gets a synthetic one: the first module starts at 0x500000000000, each other one at the next multiple of 0x100000000 behind the one
  before. Functions follow in file order, then those that only the samples name and the kernel, each at the next multiple of 0x1000 behind the one
  before, which is as long as its ``size_bytes`` or, where that is not given, as far as its samples reach.
* **Function addresses.** Without ``function_addresses`` a launch has those of its kernel and of the functions its samples name.
* **Samples.** An instruction occurs in one row only; ``latency`` is part of ``all``. Reasons that are not listed count 0. ``stall_reasons`` adds
  reasons that were watched for but never seen.
* **Duration.** ``duration_ns`` is the metric ``gpu__time_duration.sum``; give one or the other.
* **Images.** A cubin is embedded (``base64``) or lies beside the file: ``path`` is relative, without ``..``, and must lead to a file in the
  JSON file's own folder or below, also after following links. Nothing else is opened.
* **Numbers.** JSON has no NaN and no infinity: ``{"number": "nan"}``, ``"inf"`` or ``"-inf"`` stands for them.
"""

FORMAT = "gpa-lsp/profile/2"  # What is written
# What is read. Version 1 has no place for unknown grids, blocks and latency samples, for aggregates and for ``sampling``.
VERSIONS = {"gpa-lsp/profile/1": 1, FORMAT: 2}
FORMAT_FAMILY = "gpa-lsp/profile/"
SUFFIX = ".gpa-profile.json"  # How such files are named, so that they are found in a workspace

# the ``tool_version`` of profiles that were simulated; every other one was measured
SIMULATING_TOOL = "gpa-lsp simulate"

DURATION_METRIC = "gpu__time_duration.sum"  # Run time of a launch in ns, by Nsight Compute's name
