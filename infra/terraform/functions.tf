locals {
  # One entry for each directory of functions/. Each gets a zip, a role, a log group and
  # the alias live. Its permissions are in iam.tf. The event source of order is below,
  # those of webhook and intake in webhook.tf and intake.tf, the schedule of reconcile in
  # reconcile.tf, the stream of publish in publish.tf, and the queue of receipt in
  # receipt.tf.
  functions = { for name, function in {
    order = {
      description = "Charges each order exactly once"
      timeout     = var.function_timeout
      memory_size = var.memory_size
      reserved    = var.reserved_concurrency
    }
    webhook = {
      description = "Settles orders after Stripe's webhooks"
      timeout     = 15 # two calls of STRIPE_TIMEOUT and the table's; an HTTP API waits for 30 s
      memory_size = var.webhook_memory_size
      reserved    = var.webhook_reserved_concurrency
    }
    reconcile = {
      description = "Settles orders that wait"
      timeout     = 55 # shorter than the shortest schedule, so that no two runs overlap
      memory_size = 256
      reserved    = null # a new account has a quota of 10, of which nothing can be reserved
    }
    publish = {
      description = "Publishes the events of orders"
      timeout     = 30 # a batch of one order's events needs a call for each
      memory_size = 256
      reserved    = null # as above
    }
    intake = {
      description = "Accepts orders by HTTP"
      timeout     = 15 # three calls of the table and one of the queue; an HTTP API waits for 30 s
      memory_size = 256
      reserved    = var.intake_reserved_concurrency
    }
    receipt = {
      description = "Sends a receipt for each paid order"
      timeout     = 60 # three times ORDER_BUDGET, which is 20 s here
      memory_size = 256
      reserved    = null # as above
    }
  } : name => function if lookup(local.optional_functions, name, true) }

  optional_functions = {
    webhook = var.create_webhook
    intake  = var.create_intake
    receipt = var.create_receipts
  }

  # Separate from local.functions to avoid a cycle: queues and table depend on the roles,
  # so that a role is allowed to use a key before they do.
  environments = {
    order = merge({
      ORDERS_TABLE          = aws_dynamodb_table.orders.name
      QUEUE_URL             = aws_sqs_queue.orders.url
      DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letters.url
      SCOPE                 = local.scope
      STRIPE_SECRET_ARN     = local.stripe_keys.order.arn
      QUEUE_RETENTION       = "${aws_sqs_queue.orders.message_retention_seconds}s"
      STRIPE_TIMEOUT        = "8s"
      ORDER_BUDGET          = "10s"
      PARALLEL_ORDERS       = tostring(var.batch_size)
    }, [for table in aws_dynamodb_table.stock : { STOCK_TABLE = table.name }]...)
    webhook = merge({
      ORDERS_TABLE       = aws_dynamodb_table.orders.name
      SCOPE              = local.scope
      STRIPE_SECRET_ARN  = local.stripe_keys.webhook.arn
      STRIPE_TIMEOUT     = "5s" # a thin event needs two calls
      WEBHOOK_SECRET_ARN = one(aws_secretsmanager_secret.webhook[*].arn)
    }, [for table in aws_dynamodb_table.stock : { STOCK_TABLE = table.name }]...)
    reconcile = merge({
      ORDERS_TABLE      = aws_dynamodb_table.orders.name
      SCOPE             = local.scope
      STRIPE_SECRET_ARN = local.stripe_keys.reconcile.arn
      STRIPE_TIMEOUT    = "8s"
      STRIPE_RATE       = tostring(var.reconcile_rate)
      }, [for table in aws_dynamodb_table.stock : {
        STOCK_TABLE = table.name
        STOCK_HOLD  = "${var.stock_hold_hours}h"
    }]...)
    publish = {
      EVENT_BUS = aws_cloudwatch_event_bus.orders.name
      SCOPE     = local.scope
    }
    intake = merge({
      ORDERS_TABLE = aws_dynamodb_table.orders.name
      QUEUE_URL    = aws_sqs_queue.orders.url
      SCOPE        = local.scope
      }, { for name, claim in {
        OWNER_CLAIM    = try(var.intake_jwt.owner_claim, null)
        CUSTOMER_CLAIM = try(var.intake_jwt.customer_claim, null)
    } : name => claim if claim != null })
    receipt = {
      RECEIPTS_TABLE            = one(aws_dynamodb_table.receipts[*].name)
      QUEUE_URL                 = one(aws_sqs_queue.receipts[*].url)
      DEAD_LETTER_QUEUE_URL     = one(aws_sqs_queue.receipts_dead[*].url)
      SCOPE                     = local.scope
      STRIPE_SECRET_ARN         = local.stripe_keys.receipt.arn
      RECEIPT_FROM              = var.receipt_from
      RECEIPT_CONFIGURATION_SET = var.receipt_configuration_set
      RECEIPTS                  = var.receipt_mode
    }
  }

  package_dir = coalesce(var.package_dir, "${path.module}/../../build/package")
  zips        = { for name in keys(local.functions) : name => "${local.package_dir}/${name}.zip" }
  zip_sha256  = { for name, zip in local.zips : name => fileexists(zip) ? filesha256(zip) : "" }

  # The processor of each zip, from the bill of materials beside it if there is one.
  goarch = { arm64 = "arm64", x86_64 = "amd64" }[var.architecture]
  zip_goarch = { for name in keys(local.functions) : name => try([
    for p in jsondecode(file("${local.package_dir}/${name}.cdx.json")).metadata.component.properties :
    p.value if p.name == "go:build:GOARCH"
  ][0], local.goarch) }

  zip_base64sha256 = { for name, zip in local.zips : name => fileexists(zip) ? filebase64sha256(zip) : null }
}

resource "aws_lambda_function" "functions" {
  for_each = local.functions

  function_name = "${local.prefix}-${each.key}"
  # The description identifies the zip of each version: compare with
  # build/package/SHA256SUMS. It contains the versions of the function's secrets, so that
  # a rotation publishes a new version of the function after the secret is written. Its
  # new execution environments read the new secret.
  description = join(" ", concat(
    ["${each.value.description}."],
    [for key in [lookup(local.stripe_keys, each.key, null)] : key.label if key != null], # who calls Stripe
    each.key != "webhook" ? [] : [
      "Webhook secret ${try(aws_secretsmanager_secret_version.webhook[0].secret_string_wo_version, 0)}.",
    ],
    ["Zip ${local.zip_sha256[each.key]}"],
  ))
  role                           = aws_iam_role.functions[each.key].arn
  runtime                        = "provided.al2023"
  architectures                  = [var.architecture]
  handler                        = "bootstrap"
  filename                       = local.zips[each.key]
  source_code_hash               = local.zip_base64sha256[each.key]
  publish                        = true
  timeout                        = each.value.timeout
  memory_size                    = each.value.memory_size
  reserved_concurrent_executions = each.value.reserved

  environment {
    variables = local.environments[each.key]
  }

  logging_config {
    log_format            = "JSON"
    log_group             = aws_cloudwatch_log_group.functions[each.key].name
    application_log_level = "INFO" # a stricter level drops the metrics: they have no level and count as INFO
    system_log_level      = "WARN"
  }

  tracing_config {
    mode = var.tracing ? "Active" : "PassThrough"
  }

  lifecycle {
    precondition {
      condition     = fileexists(local.zips[each.key])
      error_message = "${local.zips[each.key]}: no such file, run make package in the root of the clone first"
    }

    precondition {
      condition     = local.zip_goarch[each.key] == local.goarch
      error_message = <<-EOT
        ${local.zips[each.key]}: built for another processor than architecture = "${var.architecture}", run make package
        GOARCH=${local.goarch} in the root of the clone first
      EOT
    }
  }
}

resource "aws_lambda_alias" "live" {
  for_each = local.functions

  name             = "live"
  description      = "The deployed version"
  function_name    = aws_lambda_function.functions[each.key].function_name
  function_version = aws_lambda_function.functions[each.key].version
}

resource "aws_cloudwatch_log_group" "functions" {
  for_each = local.functions

  name              = "/aws/lambda/${local.prefix}-${each.key}"
  retention_in_days = var.log_retention_days
}

locals {
  # A provisioned poller runs up to ten batches concurrently (Lambda developer guide,
  # "Using provisioned mode with an Amazon SQS event source mapping").
  concurrent_batches = (
    var.provisioned_pollers == null ? var.maximum_concurrency : 10 * var.provisioned_pollers.maximum
  )
}

# No filter_criteria: Lambda deletes messages of a queue that a filter does not match. The
# function validates them instead, and parks invalid ones with a reason.
resource "aws_lambda_event_source_mapping" "orders" {
  enabled                 = var.processing
  event_source_arn        = aws_sqs_queue.orders.arn
  function_name           = aws_lambda_alias.live["order"].arn
  batch_size              = var.batch_size
  function_response_types = ["ReportBatchItemFailures"]

  # Either scaling_config or provisioned_poller_config: Lambda rejects a mapping with
  # both.
  dynamic "scaling_config" {
    for_each = var.provisioned_pollers == null ? [var.maximum_concurrency] : []

    content {
      maximum_concurrency = scaling_config.value
    }
  }

  dynamic "provisioned_poller_config" {
    for_each = var.provisioned_pollers == null ? [] : [var.provisioned_pollers]

    content {
      minimum_pollers = provisioned_poller_config.value.minimum
      maximum_pollers = provisioned_poller_config.value.maximum
    }
  }

  metrics_config {
    metrics = ["EventCount"]
  }

  lifecycle {
    # The mapping ignores reserved concurrency. If it is lower, Lambda throttles batches,
    # and each throttled batch uses up a receive of its messages.
    precondition {
      condition = (
        var.reserved_concurrency == null ? true : var.reserved_concurrency >= local.concurrent_batches
      )
      error_message = "reserved_concurrency: must be at least ${local.concurrent_batches}, one per batch"
    }
  }

  # Lambda rejects a mapping whose function is not allowed to read the queue.
  depends_on = [aws_iam_role_policy.order]
}
