# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
print("everything is saved")
