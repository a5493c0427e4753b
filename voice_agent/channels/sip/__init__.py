"""A SIP endpoint (RFC 3261) with RTP media.

Pure: messages, transactions, dialogs, descriptions of media, RTP. Shells: the socket, the ports, the calls.
"""
