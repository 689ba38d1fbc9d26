"""Invite links, and signing up with one."""
