"""The flags that SDKs download by polling.

`sdk/base.py` reads the token's projects and their revisions. `api.py` derives the ETag from them, and answers
304 or with a cached body. `assembly.py` serializes the flags and segments of each project at one revision, reads only
the flags again that changed since its last one (`projects/revision.py`), and cuts the flags of all projects, sorted by
name, into chunks of about 64 kB (`chunks.py`). A chunk is compressed when a client first asks for gzip, and kept until
one of its flags changes; `flagadmin/core/http/gzip_member.py` joins the chunks into one gzip member. Delta hydrations
share these chunks.
"""
