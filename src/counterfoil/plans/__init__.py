"""How it goes: pure generators that yield what is to be done and decide nothing by the clock or the network.

Every `yield` is a point where the process may die; the crash tests enumerate them all.
"""
