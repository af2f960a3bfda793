"""Problems with their networks. A new kind is a folder or a file with five things.

1. settings: dataclasses of problem, network, training and pipeline, on top of those in
   `pretrained/settings.py`.
2. splits: a function from problem and replicate to `splits.Splits`.
3. network: `ThetaSpec.fresh` and `sites`, on a network of `benchmarks/networks`.
4. training: losses, mini-batches and `judge` of the `ThetaSpec`; `pretrained/theta.py`
   finds, trains, keeps and releases theta by them.
5. adapter: a `pretrained/pipeline.PretrainedPipeline`, registered in `PIPELINES`, with
   metric, sampler, losses and picture where they are not the usual ones.

`retrieval` is an example of each. Its `tiers.py` makes it a `problem.Problem`, which
tables are made of, by tier. A network that runs train themselves, as in `tabular`,
needs a `network_pipeline.NetworkPipeline` alone.

Few-shot tasks have no splits, adapter and task: `episodes` has a `contract.Pipeline` of
its own, whose prerequisites are meta-trained learners.
"""
