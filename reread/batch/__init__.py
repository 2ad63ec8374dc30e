"""Many tasks, durable, with any number of workers.

    view         what a person sees of a batch
    coordinator  starts a batch, keeps its workers alive, gathers its results
    worker       one process that works on batches
    engine       the durable engine underneath: one workflow for each item
    item         one task of a batch: prepare, run, collect
    service      what all workers may ask of the model service together: rate, budget, breaker
    leases       who is alive, and whose work goes on elsewhere
    database     the tables beside the engine's own
    gather       from the store into batches/<id>/, and what is done already
    journal      the record of a run in the store, while it grows
    store        where workers that share no disk leave what they made
    plan         the items of a batch, fixed at its start

The engine is imported by `database`, `engine` and `worker` alone; a single run knows nothing of it.
"""
