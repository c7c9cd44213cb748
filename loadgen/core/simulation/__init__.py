"""An engine with speculative decoding in virtual time, and what its step-time model predicts.

`step_time` holds the cost of a step, `roofline` makes it of a GPU (`gpus`) and a model (`models`); `survival` and
`speculator` say what a drafter proposes and what is accepted; `engine` schedules requests step by step and `loop` runs
it to the end; `speedup` and `prediction` are the closed formulas over the same values.
"""
