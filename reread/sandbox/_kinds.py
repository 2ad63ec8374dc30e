"""The kinds of namespaces that a waiting child can have entered."""

CLOSED = "namespaces"
OPEN = "namespaces with the network of this machine"
