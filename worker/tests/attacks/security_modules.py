# ends: by itself
# Sets the attributes by which security modules identify a process.
import ctypes, os
from attack import call, done, refused
context = ctypes.create_string_buffer(64)
for attribute in (100, 101, 102, 103, 104, 105):
    refused(f"attribute {attribute}", call, 460, attribute, ctypes.addressof(context), 64, 0)
done()
