"""The service's signed updates: secrets, signatures, and the receiver that turns a delivery into a wake-up.

A delivery is only ever a hint: the woken run reads the service again. Lost, doubled, early, late or forged
deliveries therefore cost nothing but time.
"""
