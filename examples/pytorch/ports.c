/* Takes ports of a device away and gives them back, through the controller API; `mrc ctl port` does
 * the same where it is installed. Needs no privileges for a device of one's own.
 *
 * Usage: mrc_ports DEVICE down|up PORT...
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrc_ctl.h"

static struct ibv_context* open_device(const char* name) {
  struct ibv_device** const list = ibv_get_device_list(NULL);
  struct ibv_context* opened = NULL;
  for (int i = 0; list != NULL && list[i] != NULL && opened == NULL; ++i) {
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) opened = ibv_open_device(list[i]);
  }
  if (list != NULL) ibv_free_device_list(list);
  return opened;
}

static int set_port(struct mrc_context* context, const char* text, int up) {
  const int port = atoi(text);
  struct mrc_ctl_port_attr attr;
  attr.port_admin_state = up ? MRC_CTL_PORT_ADMIN_ENABLED : MRC_CTL_PORT_ADMIN_DISABLED;
  int error = port < 1 || port > 32 ? EINVAL : 0;
  if (error == 0 &&
      mrc_ctl_modify_port(context, (uint8_t)port, &attr, MRC_CTL_PORT_ADMIN_STATE) != 0)
    error = errno;
  if (error != 0) fprintf(stderr, "mrc_ports: port %s: %s\n", text, strerror(error));
  return error;
}

int main(int argc, char** argv) {
  const int up = argc > 3 && strcmp(argv[2], "up") == 0;
  if (argc < 4 || (!up && strcmp(argv[2], "down") != 0)) {
    fprintf(stderr, "usage: mrc_ports DEVICE down|up PORT...\n");
    return 2;
  }
  struct ibv_context* const verbs = open_device(argv[1]);
  struct mrc_context* const context = verbs == NULL ? NULL : mrc_create_context(verbs, NULL);
  if (context == NULL) {
    fprintf(stderr, "mrc_ports: %s: %s\n", argv[1], strerror(errno));
    return 1;
  }
  int failed = 0;
  for (int i = 3; i < argc; ++i)
    failed |= set_port(context, argv[i], up);
  mrc_destroy_context(context);
  ibv_close_device(verbs);
  return failed != 0;
}
