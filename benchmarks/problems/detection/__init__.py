"""Detection: objects in images, found by a detector whose box head is adapted."""
