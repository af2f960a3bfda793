"""Problems whose answer to an example has structure: a pose, a span, a sentence.

A kind of answer is a file with a `contract.Modality`: data, network, mini-batches, and
what a picture shows. Networks, surrogates, pipelines and sizes are the same for all.
"""
