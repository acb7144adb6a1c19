"""What an evaluation needs besides its rows: word vectors and data packs, each known by its digest.

Nothing here touches the network unless a pack is asked for by name, and nothing is loaded before it is used.
"""
