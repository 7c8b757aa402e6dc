locals {
  # One entry for each folder of functions/. Each gets a zip, a role, a log group and the
  # alias `live`. What invokes it is below, its permissions are in iam.tf. publish,
  # webhook and reconcile are added here.
  functions = {
    order = {
      description = "Charges each order once and settles its row"
      timeout     = var.function_timeout
      memory_size = var.memory_size
      reserved    = var.reserved_concurrency
    }
  }

  # Separate from local.functions, because queue and table depend on the roles: the role
  # may use the key before they do.
  environments = {
    order = {
      ORDERS_TABLE          = aws_dynamodb_table.orders.name
      QUEUE_URL             = aws_sqs_queue.orders.url
      DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letters.url
      SCOPE                 = local.scope
      STRIPE_SECRET_ARN     = aws_secretsmanager_secret.stripe.arn
      QUEUE_RETENTION       = "${aws_sqs_queue.orders.message_retention_seconds}s"
      STRIPE_TIMEOUT        = "8s"
      ORDER_BUDGET          = "10s"
      PARALLEL_ORDERS       = tostring(var.batch_size)
    }
  }

  package_dir = coalesce(var.package_dir, "${path.module}/../../build/package")
  zips        = { for name in keys(local.functions) : name => "${local.package_dir}/${name}.zip" }
  zip_sha256  = { for name, zip in local.zips : name => fileexists(zip) ? filesha256(zip) : "" }
}

resource "aws_lambda_function" "functions" {
  for_each = local.functions

  function_name = "${local.prefix}-${each.key}"
  # Each version says which bytes it runs: compare with build/package/SHA256SUMS. The
  # secret's version is part of the description, so that a rotation publishes a new
  # version of the function, after the secret is written: new environments then read the
  # new key.
  description                    = "${each.value.description}. Key ${aws_secretsmanager_secret_version.stripe.secret_string_wo_version}. Zip ${local.zip_sha256[each.key]}"
  role                           = aws_iam_role.functions[each.key].arn
  runtime                        = "provided.al2023"
  architectures                  = ["arm64"]
  handler                        = "bootstrap"
  filename                       = local.zips[each.key]
  source_code_hash               = fileexists(local.zips[each.key]) ? filebase64sha256(local.zips[each.key]) : null
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
    application_log_level = "INFO" # metrics are log lines without a level, which count as INFO: less would drop them
    system_log_level      = "WARN"
  }

  tracing_config {
    mode = var.tracing ? "Active" : "PassThrough"
  }

  lifecycle {
    precondition {
      condition     = fileexists(local.zips[each.key])
      error_message = "There is no ${local.zips[each.key]}. Run `make package` in the root of the clone first."
    }
  }
}

resource "aws_lambda_alias" "live" {
  for_each = local.functions

  name             = "live"
  description      = "What is deployed"
  function_name    = aws_lambda_function.functions[each.key].function_name
  function_version = aws_lambda_function.functions[each.key].version
}

resource "aws_cloudwatch_log_group" "functions" {
  for_each = local.functions

  name              = "/aws/lambda/${local.prefix}-${each.key}"
  retention_in_days = var.log_retention_days
}

locals {
  # A provisioned poller runs up to ten batches at once (Lambda developer guide, "Using
  # provisioned mode with an Amazon SQS event source mapping").
  batches_at_once = var.provisioned_pollers == null ? var.maximum_concurrency : 10 * var.provisioned_pollers.maximum
}

# No filter_criteria: Lambda deletes what a filter of a queue does not match. The function validates, and parks with a reason.
resource "aws_lambda_event_source_mapping" "orders" {
  enabled                 = var.processing
  event_source_arn        = aws_sqs_queue.orders.arn
  function_name           = aws_lambda_alias.live["order"].arn
  batch_size              = var.batch_size
  function_response_types = ["ReportBatchItemFailures"]

  # Either of the two: provisioned pollers are limited by their own number.
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
    # The mapping ignores reserved concurrency: with less of it, batches are throttled and
    # use up their receives.
    precondition {
      condition     = var.reserved_concurrency == null ? true : var.reserved_concurrency >= local.batches_at_once
      error_message = "reserved_concurrency is less than the ${local.batches_at_once} batches that the mapping may run at once."
    }
  }

  depends_on = [aws_iam_role_policy.order] # Lambda refuses a mapping whose function may not read the queue
}
