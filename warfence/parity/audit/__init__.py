"""Declared, found, measured: does every attention backend and algorithm read its last shared table where it says so?"""
