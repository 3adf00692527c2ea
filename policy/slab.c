/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See slab.h. An object that is free begins with a pointer to the next. */
#include <config.h>

#include "policy/slab.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/ahead.h"

/* As many as a chunk of some ten pages has of what policy/ keeps here. */
#define CHUNK_OBJECTS 64

struct slab_chunk {
	struct slab_chunk *next;
};

void slab_init(struct slab *slab, size_t size)
{
	*slab = (struct slab){ .size = (size + AHEAD_LINE - 1) / AHEAD_LINE * AHEAD_LINE };
}

static void *first_line(struct slab_chunk *chunk)
{
	uintptr_t at = (uintptr_t)(chunk + 1);

	return (char *)(chunk + 1) + (AHEAD_LINE - at % AHEAD_LINE) % AHEAD_LINE;
}

void *slab_get(struct slab *slab)
{
	struct slab_chunk *chunk;
	char *object = slab->free;

	if (!object) {
		chunk = calloc(1, sizeof(*chunk) + AHEAD_LINE + CHUNK_OBJECTS * slab->size);
		if (!chunk)
			return NULL;
		chunk->next = slab->chunks;
		slab->chunks = chunk;
		for (size_t i = CHUNK_OBJECTS; i; i--) /* the first one is taken first */
			slab_put(slab, (char *)first_line(chunk) + (i - 1) * slab->size);
		object = slab->free;
	}
	memcpy(&slab->free, object, sizeof(slab->free));
	memset(object, 0, slab->size);
	return object;
}

void slab_put(struct slab *slab, void *object)
{
	if (!object)
		return;
	memcpy(object, &slab->free, sizeof(slab->free));
	slab->free = object;
}

void slab_drop(struct slab *slab)
{
	struct slab_chunk *next;

	for (struct slab_chunk *chunk = slab->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	*slab = (struct slab){ .size = slab->size };
}
